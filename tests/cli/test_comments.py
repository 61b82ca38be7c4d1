"""tests/lint/comments.py finds each declaration in a header that has no comment."""

import os
import subprocess
import sys

from mleaktest import Case, TESTS

SCRIPT = os.path.join(TESTS, "lint/comments.py")


class CommentsTest(Case):
    def findings(self, text):
        """What the script prints of a header with @text, without its name."""
        self.write("a.h", text.encode())
        done = subprocess.run([sys.executable, SCRIPT, "a.h"], cwd=self.dir, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (1 if done.stdout else 0, ""))
        self.assertNotIn("\n", done.stdout.replace(" has no comment\n", ""))
        return done.stdout.replace("a.h:", "").replace(" has no comment", "").splitlines()

    def test_a_function(self):
        self.assertEqual(self.findings("/* a.h - one */\n\nint f(void);\n"), ["3: f()"])
        self.assertEqual(self.findings("/* What it does. */\nint f(void);\n"), [])
        self.assertEqual(self.findings("/*\n * What\n\n * it does.\n */\nint f(void);\n"), [])
        self.assertEqual(self.findings("int f(void); /* what it does */\n"), [])
        self.assertEqual(self.findings("const char *f(int a,\n\t      int b); /* what it does */\n"), [])
        self.assertEqual(self.findings("/* What it does. */\n\nconst char *f(int a, int b);\n"), ["3: f()"])

    def test_a_function_that_is_defined(self):
        one = "static inline int f(void)\n{\n\tint a = 1; /* of it */\n\n\treturn a;\n}\n"
        self.assertEqual(self.findings(one), ["1: f()"])
        self.assertEqual(self.findings("/* What it does. */\n" + one + "\n" + one), ["9: f()"])
        self.assertEqual(self.findings("struct a f(struct b *b)\n{\n}\nint g(void);\n"), ["1: f()", "4: g()"])

    def test_an_attribute_is_no_function(self):
        line = "__attribute__((format(printf, 1, 2))) void f(const char *format, ...);\n"
        self.assertEqual(self.findings(line), ["1: f()"])
        self.assertEqual(self.findings("void f(const char *format) __attribute__((noreturn));\n"), ["1: f()"])

    def test_a_type(self):
        for name in "struct a", "enum a", "union a", "struct", "enum":
            self.assertEqual(self.findings(name + " {\n\tA, /* a */\n\tB,\n};\n"), ["1: " + name])
            self.assertEqual(self.findings("/* What it is. */\n" + name + " {\n\tA,\n};\n"), [])
        self.assertEqual(self.findings("struct a {\n\tstruct {\n\t\tint b;\n\t} c;\n} d;\n"), ["1: struct a"])
        self.assertEqual(self.findings("struct a { /* what it is */\n\tint b;\n};\n"), [])
        self.assertEqual(self.findings("typedef struct {\n\tint b;\n} a;\n"), ["1: struct"])

    def test_a_group_has_one_comment(self):
        self.assertEqual(self.findings("/* Both. */\nint f(void);\nint g(int a,\n      int b);\n"), [])
        self.assertEqual(self.findings("/* Both. */\nint f(void);\n\nint g(void);\n"), ["4: g()"])
        self.assertEqual(self.findings("/* Both. */\nint f(void);\n#define A 1\nint g(void);\n"), ["4: g()"])
        self.assertEqual(self.findings("int f(void);\nint g(void); /* this one */\nint h(void);\n"),
                         ["1: f()", "3: h()"])
        self.assertEqual(self.findings("int f(void); /* this one,\n\t\t* not the next */\nint g(void);\n"),
                         ["3: g()"])

    def test_what_needs_none(self):
        self.assertEqual(self.findings("#ifndef A_H\n#define A_H\n#include <a.h>\n#define f(a) \\\n\tg(a)\n\n"
                                       "struct a;\nextern int b;\ntypedef int c(int d);\n"
                                       "static const struct a e = {1, f(2)};\n"
                                       "_Static_assert(sizeof(int) == 4, \"int f(void);\");\n#endif\n"), [])

    def test_names_of_c(self):
        text = '#ifdef __cplusplus\nextern "C" {\n#endif\n\n%sint f(void);\n\n#ifdef __cplusplus\n}\n#endif\n'
        self.assertEqual(self.findings(text % ""), ["5: f()"])
        self.assertEqual(self.findings(text % "/* What it does. */\n"), [])
