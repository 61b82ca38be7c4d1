// stress_cxx.cc - allocations while C++ unwinds by itself
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "stress.h"

namespace {

struct Guard {
	~Guard() { allocate(); }
};

FRAME void throw_deep(int depth)
{
	Guard guard;

	if (depth)
		throw_deep(depth - 1);
	else
		throw std::runtime_error("of a text that is too long for its own room");
	AFTER_CALL();
}

FRAME void catch_and_throw()
{
	Guard guard;

	try {
		throw_deep(5);
	} catch (const std::exception &) {
		allocate();
		throw;
	}
}

FRAME void throw_another()
{
	try {
		catch_and_throw();
	} catch (...) {
		throw_deep(2);
	}
}

struct Half {
	Guard guard;
	std::string text;

	Half() : text(100, 'x') { throw_deep(1); }
};

FRAME void throw_in_constructor()
{
	try {
		Half *half = new Half;
		KEEP(half);
	} catch (const std::exception &) {
		allocate();
	}
}

// The landing pad runs on the frame of an array with a size of its own.
FRAME void throw_over_array(int n)
{
	alignas(64) char block[128];
	char array[n];

	KEEP(block);
	KEEP(array);
	Guard guard;
	throw_deep(1);
}

FRAME void grow()
{
	std::vector<std::string> all;

	for (int i = 0; i < 100; i++)
		all.push_back(std::string(50, 'y'));
	KEEP(all.data());
}

} // namespace

void stress_exceptions(void)
{
	try {
		throw_another();
	} catch (const std::exception &) {
		allocate();
	}
	throw_in_constructor();
	try {
		throw_over_array(100);
	} catch (...) {
		allocate();
	}
	grow();
}
