/*
 * What happens to a report before it is written: --review; under sudo it is given to who called it.
 */
#ifndef BP_CLI_PUBLISH_H
#define BP_CLI_PUBLISH_H

#include <stdbool.h>

#include <bugpack/report.h>

/* For before_publish of options, with any context; NULL where there is nothing to do. */
bugpack_before_publish_callback *bp_cli_publish_call(bool is_reviewed);

#endif
