/*
 * How severe something is, as the artefacts say it.
 */
#ifndef BP_RECORDER_LEVEL_NAME_H
#define BP_RECORDER_LEVEL_NAME_H

#include <stdint.h>

/* "trace" to "fatal", "unknown" for what is no bugpack_level. Static. */
const char *bp_level_name(uint8_t level);

#endif
