"""programs - what the exactness test samples: real programs at real work, and the stress program

Each entry of PROGRAMS is (name, function of (directory, long) that returns the commands to run in
it, as (argv, text for stdin)).
"""

import os
import random
import subprocess
import sys

STRESS = ("stress-O2", "stress-O0", "stress-O3-lto", "stress-clang")

PYTHON = """
import collections, json, re, subprocess, sys, threading
def tree(depth):
    return {str(i): tree(depth - 1) for i in range(3)} if depth else [1.5, "x" * 40, None]
def work():
    text = json.dumps(tree(4), indent=1)
    for match in re.finditer(r'"(x+)"|([0-9]+\\.5)', text):
        collections.Counter(match.groups())
    return sorted(json.loads(text), key=lambda k: str(k) * 2)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
subprocess.run([sys.executable, "-c", "import decimal; print(decimal.Decimal(2).sqrt())"])
def deep(n):
    return deep(n - 1) + 1 if n else len(list(map(lambda x: re.compile("a{%d}" % x), range(20))))
print(deep(300))
"""

PERL = """
use strict; use sort 'stable';
my %h; for my $i (1 .. 20000) { push @{$h{$i % 97}}, { key => "k$i", list => [1 .. $i % 7] }; }
sub deep { my $n = shift; return $n ? deep($n - 1) : join ",", map { $_ x 3 } sort keys %h; }
my $text = deep(60); $text =~ s/(\\d+)/sprintf "%03d", $1/ge;
my @s = sort { $a->{key} cmp $b->{key} } map { @$_ } values %h;
eval "sub f$_ { return \\$_[0] . '$_' }" for 1 .. 200;
print length($text), " ", scalar(@s), "\\n";
"""

BASH = """
declare -A count
f() { local n=$1; if (( n )); then f $((n - 1)); else for w in {a..z}{0..30}; do count[${w%?}]+=x; done; fi; }
f 40; for k in "${!count[@]}"; do v=$(echo "${count[$k]}" | tr x y); [[ $v =~ y{3,} ]] && s+=$v; done
trap 'echo ${#s}' EXIT; printf '%s\\n' {1..300} | while read -r l; do case $l in *7*) a+=("$l");; esac; done
"""

CXX = """
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct Fib { static const int value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<0> { static const int value = 0; };
template <> struct Fib<1> { static const int value = 1; };
template <class... T> auto sum(T... t) { return (t + ...); }
int main(int argc, char **)
{
	std::map<std::string, std::vector<std::function<int(int)>>> all;
	for (int i = 0; i < argc; i++)
		all[std::to_string(i)].push_back([i](int x) { return sum(x, i, Fib<20>::value); });
	return std::regex_match("x", std::regex("[a-z]+")) + (int)all.size();
}
"""


def python(directory, long):
    return [([sys.executable, "-c", PYTHON], "")] * (3 if long else 1)


def perl(directory, long):
    return [(["perl", "-e", PERL], "")]


def bash(directory, long):
    return [(["bash", "--norc", "-c", BASH], "")]


def git(directory, long):
    """In a repository of @directory with some history, which is made without the sampler."""
    env = dict(os.environ, GIT_CONFIG_NOSYSTEM="1", HOME=directory, GIT_AUTHOR_NAME="a",
               GIT_AUTHOR_EMAIL="a", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a")
    chance = random.Random(1)

    def run(*args):
        subprocess.run(["git", *args], cwd=directory, env=env, check=True,
                       stdout=subprocess.DEVNULL)

    run("init", "-q", ".")
    for commit in range(30 if long else 8):
        for _ in range(20):
            with open(os.path.join(directory, "f%d" % chance.randrange(60)), "a") as out:
                out.write("line %d\n" % chance.randrange(1000) * chance.randrange(1, 50))
        run("add", "-A")
        run("commit", "-q", "-m", "commit %d" % commit)
    with open(os.path.join(directory, "f1"), "a") as out:
        out.write("changed\n")
    commands = [["log", "--stat", "--graph"], ["status"], ["diff"], ["blame", "f1"], ["gc", "-q"]]
    return [(["git", "-c", "safe.directory=*", *command], "") for command in commands]


def sqlite3(directory, long):
    rows = 60000 if long else 4000
    return [(["sqlite3", "x.db"],
             "create table t(a integer primary key, b text, c real);"
             "with recursive n(i) as (select 1 union all select i + 1 from n where i < %d)"
             " insert into t select i, hex(i * 7919 %% 10007), i / 3.0 from n;"
             "create index tb on t(b, c); create unique index tc on t(c, a); analyze;"
             "select count(*), group_concat(distinct substr(b, 1, 2)) from t where b like '3%%'"
             " group by a %% 10 order by 2; vacuum; pragma integrity_check;" % rows)]


def cc1plus(directory, long):
    with open(os.path.join(directory, "x.cc"), "w") as out:
        out.write(CXX)
    return [(["g++", "-std=c++17", level, "-c", "x.cc"], "")
            for level in (("-O0", "-O2") if long else ("-O0",))]


PROGRAMS = [("python3", python), ("perl", perl), ("git", git), ("sqlite3", sqlite3),
            ("bash", bash), ("cc1plus", cc1plus)]
