// cxx.cc - a program whose names are looked up: templates of the standard library, much inlined
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

template <int N> struct Stage {
	std::map<std::string, std::vector<int>> table;
	std::unordered_map<int, std::shared_ptr<Stage>> next;
	std::set<std::pair<int, std::string>> order;

	long run(int n)
	{
		std::ostringstream out;
		for (int i = 0; i < n; i++) {
			out << i << N;
			table[out.str()].push_back(i);
			order.emplace(i * N, out.str());
			next[i] = std::make_shared<Stage>();
		}
		for (auto &[name, values] : table)
			std::sort(values.begin(), values.end(), [](int a, int b) { return a * N < b; });
		std::function<long(int)> sum = [this](int i) { return table.size() + i + N; };
		return sum(n) + Stage<N - 1>().run(n);
	}
};

template <> struct Stage<0> {
	long run(int n)
	{
		return std::regex_match(std::to_string(n), std::regex("[0-9]+(a|b)*"));
	}
};

int main(int argc, char **)
{
	return Stage<12>().run(argc) == 0;
}
