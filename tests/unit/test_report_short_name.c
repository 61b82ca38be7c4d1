/* test_report_short_name.c - names as people write them; whatever they are, they get no longer */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/base/text.h"
#include "report/name/short_name.h"

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

static const struct {
	const char *name, *shown;
} names[] = {
	{"main", "main"},
	{STRING, "std::string"},
	{"std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >",
	 "std::wstring"},
	{"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char>>",
	 "std::string"},
	{STRING "::_M_create(unsigned long&, unsigned long)",
	 "std::string::_M_create(unsigned long&, unsigned long)"},
	{"std::vector<int, std::allocator<int> >::push_back(int const&)",
	 "std::vector<int>::push_back(int const&)"},
	{"f(std::vector<" STRING ", std::allocator<" STRING " > >)", "f(std::vector<std::string>)"},
	{"std::map<" STRING ", int, std::less<" STRING " >, std::allocator<std::pair<" STRING
	 " const, int> > >::operator[](" STRING "&&)",
	 "std::map<std::string, int>::operator[](std::string&&)"},
	{"std::unordered_map<int, X, std::hash<int>, std::equal_to<int>, "
	 "std::allocator<std::pair<int const, X> > >",
	 "std::unordered_map<int, X>"},
	{"std::unique_ptr<X [], std::default_delete<X []> >", "std::unique_ptr<X []>"},
	{"std::ostream& std::operator<< <std::char_traits<char> >(std::basic_ostream<char, "
	 "std::char_traits<char> >&, char const*)",
	 "std::ostream& std::operator<< <std::char_traits<char>>(std::ostream&, char const*)"},
	{"std::priority_queue<int, std::vector<int, std::allocator<int> >, std::less<int> >",
	 "std::priority_queue<int>"},
	{"std::filesystem::__cxx11::path::operator/=(std::filesystem::__cxx11::path const&)",
	 "std::filesystem::path::operator/=(std::filesystem::path const&)"},
	/* what is not the default stays */
	{"std::vector<int, my::allocator<int> >", "std::vector<int, my::allocator<int>>"},
	{"std::map<int, X, std::greater<int>, std::allocator<std::pair<int const, X> > >",
	 "std::map<int, X, std::greater<int>>"},
	{"std::set<int, std::less<void>, std::allocator<int> >", "std::set<int, std::less<void>>"},
	{"std::map<int, X, std::less<long>, std::allocator<std::pair<int const, X> > >",
	 "std::map<int, X, std::less<long>>"},
	{"my::vector<int, std::allocator<int> >", "my::vector<int, std::allocator<int>>"},
	{"std::allocator<int>::allocate(unsigned long)",
	 "std::allocator<int>::allocate(unsigned long)"},
	{"my::__cxx11::thing", "my::__cxx11::thing"},
	{"std::map<int, X, std::less<int>, my::pool<int> >",
	 "std::map<int, X, std::less<int>, my::pool<int>>"},
	/* operators and expressions are no brackets */
	{"operator< <int>(X<int> const&, X<int> const&)",
	 "operator< <int>(X<int> const&, X<int> const&)"},
	{"X::operator->() const", "X::operator->() const"},
	{"std::operator+<char, std::vector<int, std::allocator<int> > >(char)",
	 "std::operator+<char, std::vector<int>>(char)"},
	{"X::operator()<std::vector<int, std::allocator<int> > >(int) const",
	 "X::operator()<std::vector<int>>(int) const"},
	{"a<(b)>(c)>(std::vector<int, std::allocator<int> >)", "a<(b)>(c)>(std::vector<int>)"},
	{"a<((b)>(c)), std::vector<int, std::allocator<int> > >", "a<((b)>(c)), std::vector<int>>"},
	{"<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
	 "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"},
	{"<X as core::ops::Fn<(u8,)>>::call::<fn(u8) -> u8>",
	 "<X as core::ops::Fn<(u8,)>>::call::<fn(u8) -> u8>"},
	{"_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZNSt6vectorIiSaIiEE9push_backERKi"},
	/* brackets that do not match: nothing is known */
	{"std::vector<int, std::allocator<int>", "std::vector<int, std::allocator<int>"},
	{"a>b<std::vector<int, std::allocator<int> > >>", "a>b<std::vector<int>>>"},
	{"std::vector<int,std::allocator<int> >", "std::vector<int,std::allocator<int>>"},
	{"std::vector<>", "std::vector<>"},
	{"std::vector<, >", "std::vector<,>"},
	{"", ""},
	{"<", "<"},
	{"operator", "operator"},
};

static void what_is_the_default_is_left_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *text = short_name(names[i].name);

		assert_non_null(text);
		assert_string_equal(text, names[i].shown);
		free(text);
	}
}

static void check_fit(const char *name, size_t columns, const char *expected)
{
	char *text = name_to_fit(name, columns);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static void what_does_not_fit_loses_its_arguments_from_inside_and_its_beginning_last(void **state)
{
	static const char name[] =
		"app::cache<app::key<int, long>, app::value>::insert(app::key<int, "
		"long> const&)";

	(void)state;
	check_fit(name, 0, name);
	check_fit(name, 200, name);
	check_fit(name, 75,
		  "app::cache<app::key<...>, app::value>::insert(app::key<int, long> const&)");
	check_fit(name, 50, "app::cache<...>::insert(app::key<...> const&)");
	check_fit(name, 30, "app::cache<...>::insert(...)");
	check_fit(name, 15, "...:insert(...)");
	check_fit("na\xc3\xafve_naive_na\xc3\xafve", 10, "...e_na\xc3\xafve");
	check_fit("f(int, int) [guessed]", 17, "f(...) [guessed]");
	check_fit("(anonymous namespace)::f(int, long)", 32, "(anonymous namespace)::f(...)");
}

/* Some of the words that names are made of, and brackets that match only by chance. */
static void random_name(uint64_t *seed, char *name, size_t room)
{
	static const char *const words[] = {
		"std::",
		"vector",
		"basic_string",
		"allocator",
		"<",
		">",
		"<",
		" >",
		", ",
		",",
		"(",
		")",
		"[",
		"]",
		"{",
		"}",
		"operator",
		"::__cxx11::",
		"::",
		"char",
		"int",
		"map",
		"std::pair<",
		"std::less<",
		"->",
		"&",
		" ",
		"\xc3\xaf",
		"std::char_traits<char>",
		"std::vector<int, std::allocator<int> >",
		"-",
		"=",
		"_V2",
		"a",
		"",
	};
	size_t nr = sizeof(words) / sizeof(*words);

	*name = '\0';
	while (strlen(name) + 64 < room) {
		*seed ^= *seed << 13;
		*seed ^= *seed >> 7;
		*seed ^= *seed << 17;
		if (*seed % 40 == 0)
			break;
		strcat(name, words[(*seed >> 8) % nr]);
	}
}

static void no_name_gets_longer_or_wider_than_it_may(void **state)
{
	uint64_t seed = 88172645463325252u;
	char name[1024];

	(void)state;
	for (int i = 0; i < 200000; i++) {
		char *text, *fits, *again;
		size_t columns = 4 + (size_t)(i % 60);

		random_name(&seed, name, sizeof(name));
		text = short_name(name);
		fits = name_to_fit(name, columns);
		assert_true(text && fits);
		assert_true(strlen(text) <= strlen(name));
		assert_true(strlen(fits) <= strlen(text));
		assert_true(text_columns(fits) <= columns);
		/* what is short has nothing left to shorten, unless its brackets match only now */
		again = short_name(text);
		assert_true(again && strlen(again) <= strlen(text));
		free(again);
		free(text);
		free(fits);
	}
}

static void deep_and_long_names_are_done_at_once(void **state)
{
	size_t len = 60000;
	char *name = calloc(1, len + 1), *text;
	static const char *const patterns[] = {"a<",
					       "std::",
					       "<",
					       "(",
					       "operator<",
					       "::__1",
					       "std::vector<int, std::allocator<int> >, "};

	(void)state;
	assert_non_null(name);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		for (size_t at = 0; at < len; at++)
			name[at] = patterns[i][at % strlen(patterns[i])];
		text = name_to_fit(name, 40);
		assert_non_null(text);
		assert_true(text_columns(text) <= 40);
		free(text);
	}
	/* as deep as can be */
	*name = '\0';
	for (int i = 0; i < 127; i++)
		memcpy(name + 12 * i, "std::vector<", 12);
	memset(name + 12 * 127, '>', 127);
	name[13 * 127] = '\0';
	text = short_name(name);
	assert_string_equal(text, name);
	free(text);
	free(name);
}

static void all_is_shown_if_wanted(void **state)
{
	(void)state;
	short_names_disable();
	check_fit(STRING, 10, STRING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_the_default_is_left_out),
		cmocka_unit_test(
			what_does_not_fit_loses_its_arguments_from_inside_and_its_beginning_last),
		cmocka_unit_test(no_name_gets_longer_or_wider_than_it_may),
		cmocka_unit_test(deep_and_long_names_are_done_at_once),
		cmocka_unit_test(all_is_shown_if_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
