/* stress.h - the parts of the stress program, whose stacks are as odd as real ones get
 *
 * Every part calls allocate() from where it is hard to unwind.
 */
#ifndef STRESS_H
#define STRESS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function that has a frame of its own. */
#define FRAME __attribute__((noinline))

/* Work after a call: without it the compiler makes it a jump, and the caller's frame is gone. */
#define AFTER_CALL() __asm__ volatile("" : : : "memory")

/* Let @p look used. */
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

/* Allocate a block, which is never freed; nothing while the thread is in here already, so that a
 * signal handler may call it at any time. */
void allocate(void);

/* Whether the thread is in allocate().  If so, and stepping is set aside, it goes on at the end. */
int allocating(void);
void step_later(void);

/* End the program with a message unless @good. */
void must(int good, const char *what);

void stress_frames(void);     /* stress_frames.c */
void stress_signals(void);    /* stress_signals.c */
void stress_steps(int max);   /* the same: @max instructions of each piece of code, one by one */
void stress_threads(void);    /* stress_threads.c */
void stress_plugins(void);    /* stress_load.c */
void stress_exceptions(void); /* stress_cxx.cc */

/* stress_frames.c: the pieces that stress_steps() goes through. */
void frames_piece(int number);
enum { FRAMES_PIECES = 9 };

/* stress_load.c: load the plugin anew and call its functions, none of which is bound yet. */
void load_bind(void (*before_and_after)(void));

/* stress_asm.S: call @fn with frames that compilers do not make. */
void asm_expression(void (*fn)(void)); /* CFA by DW_CFA_def_cfa_expression */
void asm_cfa_in_rbx(void (*fn)(void)); /* CFA in rbx, which the next frame moves to r12 */
void asm_push_pop(void (*fn)(void));   /* CFA changes around the call */
void asm_saved_in_red_zone(void);      /* a leaf that keeps rbx below rsp */
void asm_noreturn(void (*fn)(void));   /* the call is its last instruction; fn may not return */

#ifdef __cplusplus
}
#endif

#endif
