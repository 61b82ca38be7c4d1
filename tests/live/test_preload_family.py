"""Children are recorded by the preloaded library, too: the tests of test_family, as an ordinary user."""

import os
import re

import test_family
from mleaktest import parse_totals
import test_preload


class PreloadFamilyTest(test_preload.PreloadCase, test_family.CommandFamilyTest):
    program = test_family.MLEAK_FAST

    def setUp(self):
        test_preload.PreloadCase.setUp(self)
        self.family = test_family.FamilyCase.compile(self, "family", test_family.FAMILY, "-pthread")

    def compile(self, name, source, *flags):
        return test_family.FamilyCase.compile(self, name, source, *flags)

    def start_mleak(self, command, *args, **options):
        if command == "record":
            args = ("--backend", "preload", *args)
            options = dict(self.as_user, **options)
        return super().start_mleak(command, *args, **options)


