/*
 * disconnect-cause.json as it is printed: its keys, what is left out, and times that make no sense.
 */
#include "unit/model_fixture.h"

TestSuite(model_disconnect, .init = begin_printing, .fini = end_printing);

Test(model_disconnect, leaves_out_what_is_not_known) {
    EXPECT_PRINTED(bp_disconnect_print(&sample_disconnect_bare, &out, &error),
                   "{\"channel\":\"m\",\"keepalive_fired\":false,"
                   "\"time\":\"2026-11-21T00:36:51.000000Z\",\"cooldown_ms\":0,"
                   "\"suppressed_before\":0,\"channels\":[]}");
}

Test(model_disconnect, counts_exactly_and_is_never_idle_for_less_than_nothing) {
    EXPECT_PRINTED(bp_disconnect_print(&sample_disconnect_full, &out, &error),
                   "{\"channel\":\"main\\n\xee\xbf\xbf\","
                   "\"error\":\"reset\\r\\n\\u001b[31m\xee\xbf\xbf by \\\"peer\\\"\","
                   "\"error_kind\":\"io\xee\xbf\xbe\",\"keepalive_fired\":true,"
                   "\"time\":\"2026-11-21T00:36:51.000000Z\",\"cooldown_ms\":18446744073709551615,"
                   "\"suppressed_before\":18446744073709551615,\"others\":[{"
                   "\"channel\":\"display\",\"error\":\"EOF\",\"keepalive_fired\":false,"
                   "\"time\":\"2026-11-21T00:36:52.000000Z\"}],\"channels\":[{"
                   "\"name\":\"main\\n\xee\xbf\xbf\",\"sent\":{\"messages\":18446744073709551615,"
                   "\"bytes\":18446744073709551615,\"last\":\"2026-11-21T00:36:49.000000Z\","
                   "\"idle_ms\":2000},\"received\":{\"messages\":0,\"bytes\":0}},{"
                   "\"name\":\"display\",\"sent\":{\"messages\":1,\"bytes\":0,"
                   "\"last\":\"2026-11-21T00:36:44.000000Z\",\"idle_ms\":7000},\"received\":{"
                   "\"messages\":2,\"bytes\":3,\"last\":\"2026-11-21T00:36:51.000000Z\","
                   "\"idle_ms\":0}}]}");
}
