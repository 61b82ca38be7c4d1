/* eval_code.h - which machine code interprets: a function, and what the compiler moved out of it */
#ifndef RECORD_EVAL_CODE_H
#define RECORD_EVAL_CODE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/code.h"

/*
 * Where the part of the function at [@start, @end), addresses of @elf, is that is seldom executed.
 * No symbol tells it in a stripped file: it is the range of call frame information to which most
 * jumps lead that leave the function.  False: there is none.
 */
bool eval_code_cold(Elf *elf, uint64_t start, uint64_t end, struct mlk_code_range *cold);

#endif
