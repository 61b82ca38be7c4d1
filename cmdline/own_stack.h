/* own_stack.h - a stack of usual size, where the limit on stacks (ulimit -s) is lower */
#ifndef CMDLINE_OWN_STACK_H
#define CMDLINE_OWN_STACK_H

/* Return @run(@argc, @argv), on a stack of 8 MiB at least; threads that it begins have that, too.
 * The limit stays as it is: programs that are begun have it. */
int run_on_own_stack(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
