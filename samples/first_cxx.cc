// first_cxx.cc - a leak before main() begins, in the constructor of a static object
#include "sample.h"

namespace plant
{

struct Registry {
	leak_sum sum = {};
	char *block;

	FRAME Registry();
};

FRAME Registry::Registry() : block(new char[LEAK_BYTES])
{
	leak_add(&sum, block, LEAK_BYTES);
}

} // namespace plant

static plant::Registry registry;

int main()
{
	answer(&registry.sum, "plant::Registry::Registry();*;operator new(unsigned long)");
	return 0;
}
