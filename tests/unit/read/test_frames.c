/*
 * Lists of frames, of C functions and of functions of Python.
 */
#include "entries/frames.h"
#include "json/tree_reader.h"
#include "unit/unit.h"

#define SLEEPS                                                                                     \
    "\"frames\": [{\"address\": \"0x1\", \"module\": \"/lib/libc.so.6\", \"offset\": \"0x1\", "    \
    "\"symbol\": \"clock_nanosleep\"}, {\"address\": \"0x2\", \"module\": "                        \
    "\"/usr/bin/python3.11\", \"offset\": \"0x2\"}, {\"address\": \"0x3\", \"module\": "           \
    "\"/usr/bin/python3.11\", \"offset\": \"0x3\", \"symbol\": \"Py_BytesMain\"}]"
#define WAIT                                                                                       \
    "{\"function\": \"Event.wait\", \"source\": \"/usr/lib/python3.11/threading.py\", "            \
    "\"line\": 622}"
#define OWN                                                                                        \
    "{\"function\": \"main.<locals>.take\", \"source\": "                                          \
    "\"/usr/lib/python3.11/site-packages/app.py\", \"line\": 7}"

static const bp_frame_finder finder = {NULL, NULL, NULL};

static const char *print(const char *text, const char *call, bool is_own) {
    static char out[BP_FRAME_LIST_BYTES];
    bp_json_tree *stack = NULL;
    cr_assert(bp_json_tree_read(text, strlen(text), &stack, NULL) == BUGPACK_OK);
    if (is_own) {
        bp_frames_print_own(stack, &finder, out);
    } else {
        bp_frames_print(stack, &finder, call, out);
    }
    bp_json_tree_free(stack);
    return out;
}

Test(frames, of_python_take_the_place_of_their_interpreter) {
    static const char text[] = "{" SLEEPS ", \"python_frames\": [" WAIT ", " OWN ", " WAIT "]}";
    cr_expect(eq(str, (char *)print(text, "clock_nanosleep", false),
                 "clock_nanosleep\u2026 < take (app.py:7)"));
    cr_expect(eq(str, (char *)print(text, NULL, false), "Event.wait < take (app.py:7)"));
    cr_expect(eq(str, (char *)print(text, NULL, true), "take (app.py:7)"));
}

Test(frames, of_modules_of_python_are_shown_where_there_are_no_others) {
    static const char text[] =
        "{" SLEEPS ", \"python_frames\": [" WAIT "], \"python_reason\": \"it ran\"}";
    cr_expect(eq(str, (char *)print(text, "clock_nanosleep", false),
                 "clock_nanosleep < Event.wait (threading.py:622) < \u2026"));
    cr_expect(eq(str, (char *)print(text, NULL, true), "Event.wait (threading.py:622)"));
}

Test(frames, of_a_running_thread_are_those_of_python) {
    static const char text[] = "{\"state\": \"running\", \"reason\": \"it has no stack\", "
                               "\"python_frames\": [" OWN "]}";
    cr_expect(eq(str, (char *)print(text, "", false), "take (app.py:7)"));
}

Test(frames, of_the_interpreter_stay_without_functions_of_python) {
    cr_expect(eq(str, (char *)print("{" SLEEPS "}", NULL, false),
                 "clock_nanosleep < python3.11+0x2 < Py_BytesMain"));
    cr_expect(eq(str, (char *)print("{\"python_frames\": [7, {\"line\": \"x\"}]}", NULL, false),
                 "? \u00d72"));
}
