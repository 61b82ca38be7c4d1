/* twin_b.c - twin_b.so, a library of the sample twins whose functions have the names of twin_a.so's
 */
#define TWIN_BYTES 53
#include "twin.h"
