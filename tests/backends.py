"""backends - run a class of tests under each backend that can record a command, for tests in live/."""

import os
import sys

from mleaktest import AS_NOBODY, bpf_hindrance, needs_bpf


class Preloaded:
    """Mixed into a test: commands are recorded by the preloaded library; as nobody where we may
    become that."""

    preloaded = True
    recorded_as = AS_NOBODY if os.geteuid() == 0 else {}

    def start_mleak(self, command, *args, **options):
        if command == "record":
            os.chmod(self.dir, 0o777)
            args = ("--backend", "preload", *args)
            options = {**self.recorded_as, **options}
        return super().start_mleak(command, *args, **options)


def by_bpf_alone(test):
    """Method decorator: a test of what the preloaded library does not do."""
    test.by_bpf_alone = True
    return test


def both_backends(case_class):
    """Class decorator: run the tests under BPF, and as NAMEPreloaded by the preloaded library, too."""
    left_out = {name: None for name in dir(case_class)
                if getattr(getattr(case_class, name), "by_bpf_alone", False)}
    twin = type(case_class.__name__ + "Preloaded", (Preloaded, needs_bpf(case_class)),
                {"__module__": case_class.__module__, **left_out})
    setattr(sys.modules[case_class.__module__], twin.__name__, twin)
    return case_class


def either_backend(case_class):
    """Class decorator: run the tests under BPF where it is, else by the preloaded library; for tests of
    what becomes of a trace, which take long."""
    if bpf_hindrance() is None or os.environ.get("MLEAK_REQUIRE_BPF") == "1":
        return needs_bpf(case_class)
    return type(case_class.__name__, (Preloaded, case_class), {"__module__": case_class.__module__})
