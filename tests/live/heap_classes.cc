// heap_classes.cc - has lost objects of classes, whose first words say which; then waits
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace shop {

struct Item {
	virtual ~Item() = default;
	virtual int price() const = 0;
	long words[4] = {};
};

template <typename T> struct Basket : Item {
	T count = 0;
	int price() const override { return int(count); }
};

struct Order : Item {
	char text[200] = {};
	int price() const override { return 7; }
};

} // namespace shop

static shop::Item *volatile last;

__attribute__((noinline)) static void lose()
{
	for (int i = 0; i < 31; i++)
		last = new shop::Basket<int>;
	for (int i = 0; i < 37; i++)
		last = new shop::Order;
	for (int i = 0; i < 23; i++)
		last = reinterpret_cast<shop::Item *>(new char[47]());
	last = nullptr;
}

__attribute__((noinline)) static void scrub()
{
	volatile char room[48 << 10];

	memset(const_cast<char *>(room), 0, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
}

int main()
{
	char byte;

	lose();
	puts("ready");
	fflush(stdout);
	scrub();
	return read(STDIN_FILENO, &byte, 1) < 0;
}
