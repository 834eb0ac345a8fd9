/*
 * A report as an event of Sentry, or GlitchTip, with the zip as its attachment.
 */
#ifndef BP_SEND_ENVELOPE_H
#define BP_SEND_ENVELOPE_H

#include "send/message.h"

/*
 * Makes the message of an envelope (https://develop.sentry.dev/sdk/data-model/envelopes/) for the
 * DSN of the destination. The event is named after the report's first finding and grouped by its
 * diagnosis. Errors of bp_index_line; INVALID for a URL that is no DSN.
 */
bugpack_status bp_send_envelope_make(const bp_send_destination *destination,
                                     const bp_send_report *report, bp_send_message *message,
                                     bugpack_error *error);

#endif
