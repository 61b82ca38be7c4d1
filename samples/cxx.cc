// cxx.cc - leaks of C++: new, new[] and the nodes of a container that is never destroyed
#include <map>
#include <new>
#include <string>

#include "sample.h"

namespace
{

struct Order {
	char text[LEAK_BYTES];
};

FRAME void leak_array(int items, leak_sum &sum)
{
	char *array = new char[items];

	leak_add(&sum, array, items);
}

} // namespace

namespace shop
{

FRAME void place_order(leak_sum &sum)
{
	Order *order = new Order;

	leak_add(&sum, order, sizeof(*order));
}

template <typename Item> struct Shelf {
	using Items = std::map<Item, std::string>;
	using Node = std::_Rb_tree_node<typename Items::value_type>;

	Items items;
	leak_sum sum = {};

	FRAME void put(Item item);
};

// The string is short enough to be kept inside its node, so that a node is the only block.
template <typename Item> FRAME void Shelf<Item>::put(Item item)
{
	items.emplace(item, "small");
	sum.blocks++;
	sum.bytes += sizeof(Node);
}

} // namespace shop

FRAME void churn()
{
	std::map<int, std::string> balanced;

	for (int i = 0; i < 100; i++)
		balanced.emplace(i, std::string(100 + i, 'x'));
	AFTER_CALL();
}

int main()
{
	// Never destroyed: made in place, in memory that is no block.
	alignas(shop::Shelf<long>) static unsigned char place[sizeof(shop::Shelf<long>)];
	auto *shelf = new (place) shop::Shelf<long>;
	leak_sum orders = {};
	leak_sum arrays = {};

	for (int i = 0; i < LEAK_BLOCKS; i++) {
		churn();
		shop::place_order(orders);
		leak_array(100 + i, arrays);
		shelf->put(i);
	}
	// operator new[] jumps to operator new where the library was built so: no frame then.
	answer(&orders, "main;shop::place_order(leak_sum&);operator new(unsigned long)");
	answer(&arrays, "main;(anonymous namespace)::leak_array(int, leak_sum&);*;"
			"operator new(unsigned long)");
	answer(&shelf->sum, "main;shop::Shelf<long>::put(long);*;operator new(unsigned long)");
	return 0;
}
