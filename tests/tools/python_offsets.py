"""python_offsets.py - where CPython's structs have what tells frames, by its own headers

usage: python_offsets.py INCLUDE...

INCLUDE is a folder with Python.h and internal/, as .../include/python3.8.  Prints the numbers of
record/interpreter/python_layout.c.  Since 3.13 interpreters tell all but the key themselves.
"""

import os
import subprocess
import sys
import tempfile

PROGRAM = r"""
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#else
#include <frameobject.h>
#endif
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_runtime.h"
#else
#include "internal/pycore_pystate.h"
#endif
#define TELL(type, member) printf("  %s.%s %zu\n", #type, #member, offsetof(type, member))

int main(void)
{
	printf("%s\n", PY_VERSION);
	TELL(PyThreadState, thread_id);
#if PY_VERSION_HEX < 0x030b0000
	TELL(PyThreadState, frame);
	TELL(PyFrameObject, f_back);
	TELL(PyFrameObject, f_code);
	TELL(PyFrameObject, f_lasti);
#else
	TELL(_PyInterpreterFrame, previous);
	TELL(_PyInterpreterFrame, owner);
#if PY_VERSION_HEX < 0x030d0000
	TELL(PyThreadState, cframe);
	TELL(_PyCFrame, current_frame);
	TELL(_PyInterpreterFrame, f_code);
	TELL(_PyInterpreterFrame, prev_instr);
#else
	TELL(PyThreadState, current_frame);
	TELL(_PyInterpreterFrame, f_executable);
	TELL(_PyInterpreterFrame, instr_ptr);
#endif
#if PY_VERSION_HEX < 0x030c0000
	TELL(_PyInterpreterFrame, is_entry);
#endif
	TELL(PyCodeObject, co_code_adaptive);
#endif
#if PY_VERSION_HEX < 0x030c0000
	TELL(_PyRuntimeState, gilstate.tstate_current);
	TELL(_PyRuntimeState, gilstate.autoTSSkey);
#else
	TELL(_PyRuntimeState, autoTSSkey);
#endif
	TELL(PyCodeObject, co_firstlineno);
	TELL(PyCodeObject, co_filename);
	TELL(PyCodeObject, co_name);
#if PY_VERSION_HEX >= 0x030a0000
	TELL(PyCodeObject, co_linetable);
#else
	TELL(PyCodeObject, co_lnotab);
#endif
	printf("  sizeof(PyASCIIObject) %zu\n", sizeof(PyASCIIObject));
	printf("  sizeof(PyCompactUnicodeObject) %zu\n", sizeof(PyCompactUnicodeObject));
	return 0;
}
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "offsets")
        for include in sys.argv[1:]:
            subprocess.run(["gcc", "-w", "-I", include, "-I", os.path.join(include, "internal"),
                            "-x", "c", "-", "-o", program], input=PROGRAM.encode(), check=True)
            subprocess.run([program], check=True)


if __name__ == "__main__":
    main()
