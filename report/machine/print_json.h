/* print_json.h - pieces of the JSON formats
 *
 * Errors of writing are left in the output for ferror().
 */
#ifndef REPORT_PRINT_JSON_H
#define REPORT_PRINT_JSON_H

#include "report/base/json.h"
#include "report/context/report_data.h"
#include "report/context/stack_notes.h"

/* Write @amount as an object, as json_number() writes a number. */
void json_amount(struct json *json, const char *key, struct live_amount amount);

/* Append `reach`, where the trace has pointers. */
void json_reach(struct json *json, const struct report_data *export);

/* Write it of the outstanding blocks of stack @stack of the replay as the member "verdicts";
 * nothing where it is not known. */
void json_stack_verdicts(struct json *json, const struct report_data *export, uint32_t stack);

/* Write @place as an element of an array. */
void json_place(struct json *json, const struct place *place);

/* Begin a document with what all have: its @schema, the trace, the totals, what is shown of it and
 * what was lost.  Returns 0 or -ENOMEM; json_end() is called in any case. */
int json_begin(struct json *json, const struct report_data *export, const char *schema,
	       unsigned int version);

/* Write the samples of each process's memory as the array @key: the first and the last, or @each
 * that is known. */
void json_memory(struct json *json, const struct report_data *export, const char *key, bool each);

/* Write the member "marks": the moments that were marked while recording. */
void json_marks(struct json *json, const struct report_data *export);

/* Write the member "frames", into which the "frames" of stacks are indices. */
void json_frames(struct json *json, const struct places *places);

/* Write the members of stack @i of the view into the object that is open. */
void json_stack(struct json *json, const struct report_data *export,
		const struct stack_notes *notes, size_t i);

/* Write the member "left_out": @nr of @what (a key), with @amount. */
void json_left_out(struct json *json, const char *what, size_t nr, struct live_amount amount);

/* End it, with what suppressions and options keep out of it. */
void json_end(struct json *json, const struct report_data *export);

#endif
