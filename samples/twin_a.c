/* twin_a.c - twin_a.so, the library that the sample twins loads twice */
#define TWIN_BYTES LEAK_BYTES
#include "twin.h"
