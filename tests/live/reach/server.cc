/* server.cc - has its data in containers of the standard library, which its threads change all the
 * time
 *
 * Loads the library that the argument names.  A line on stdin has it lose blocks, by functions
 * lose_SHAPE; how many these are is on stdout then.
 */
#include <dlfcn.h>

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "../../../samples/sample.h"

struct session {
	std::string name;
	std::vector<std::unique_ptr<std::string>> lines;
	std::shared_ptr<session> next;
	std::weak_ptr<session> before;

	virtual ~session()
	{
	}
};

struct named {
	virtual ~named()
	{
	}
	std::set<std::string> names;
};

/* A pointer to it as `named` is one into its middle. */
struct both : session, named {
};

static std::mutex mutex;
static std::map<int, std::shared_ptr<session>> by_number;
static std::unordered_map<std::string, std::unique_ptr<both>> by_name;
static std::list<std::deque<std::string>> queues;
static std::vector<std::function<size_t()>> calls;
static std::vector<named *> in_the_middle;

static std::string text(int i)
{
	return "a string that is too long to be in the object itself: " + std::to_string(i);
}

static void change(int i)
{
	std::lock_guard<std::mutex> lock(mutex);
	auto one = std::make_shared<session>();
	std::unique_ptr<both> other(new both);
	std::string captured = text(i);

	one->name = text(i);
	one->lines.emplace_back(new std::string(text(i + 1)));
	one->next = by_number[i % 1999];
	if (one->next) {
		one->next->next = nullptr;
		one->next->before = one;
	}
	by_number[i % 1999] = one;
	other->names.insert(text(i));
	other->names.insert(text(i + 2));
	in_the_middle[(size_t)i % in_the_middle.size()] = nullptr;
	by_name[text(i % 997)] = std::move(other);
	queues.emplace_front();
	queues.front().push_back(text(i));
	queues.splice(queues.end(), queues, queues.begin());
	if (queues.size() > 499)
		queues.pop_front();
	calls[(size_t)i % calls.size()] = [captured] { return captured.size(); };
}

static void serve(int first)
{
	for (int i = first;; i += 2) {
		change(i);
		if (i % 64 < 2)
			usleep(1000);
	}
}

struct ring {
	std::shared_ptr<ring> other;
	char room[64];
};

static FRAME void lose_ring()
{
	auto one = std::make_shared<ring>(), two = std::make_shared<ring>();

	one->other = two;
	two->other = one;
	AFTER_CALL();
}

static FRAME void lose_vector()
{
	auto *all = new std::vector<std::unique_ptr<int>>;

	all->reserve(31);
	for (int i = 0; i < 31; i++)
		all->emplace_back(new int(i));
	keep(all);
	AFTER_CALL();
}

static FRAME void lose_map()
{
	auto *all = new std::map<int, int>;

	for (int i = 0; i < 37; i++)
		(*all)[i] = i;
	keep(all);
	AFTER_CALL();
}

/* In a thread of its own: main() has words of what was freed, where these blocks may be. */
static FRAME void lose_all()
{
	lose_ring();
	lose_vector();
	lose_map();
	AFTER_CALL();
}

int main(int argc, char **argv)
{
	char byte;

	in_the_middle.resize(101);
	calls.resize(103);
	std::thread(serve, 0).detach();
	std::thread(serve, 1).detach();
	if (argc < 2 || !dlopen(argv[1], RTLD_NOW))
		return 98;
	say("ready\n");
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		std::thread(lose_all).join();
		say("%d\n", 2 + 33 + 38);
	}
	_exit(0);
}
