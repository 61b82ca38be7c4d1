/* print_json.h - pieces of the JSON formats */
#ifndef REPORT_PRINT_JSON_H
#define REPORT_PRINT_JSON_H

#include "report/json.h"
#include "report/live.h"
#include "report/places.h"

/* Write @amount as an object, as json_number() writes a number. */
void json_amount(struct json *json, const char *key, struct live_amount amount);

/* Write @place as an element of an array. */
void json_place(struct json *json, const struct place *place);

#endif
