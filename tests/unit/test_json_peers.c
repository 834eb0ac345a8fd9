/*
 * The strict reader beside another one: Python's, which most who read reports by script will use.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_cases.h"
#include "support/not_tried.h"
#include "support/temp_dir.h"

/* Prints one digit for each file, in the order of their names: whether Python accepts the text. */
static const char program[] = "import json, os, sys\n"
                              "def accepts(path):\n"
                              "    try:\n"
                              "        json.loads(open(path, 'rb').read().decode('utf-8'))\n"
                              "        return '1'\n"
                              "    except ValueError:\n"
                              "        return '0'\n"
                              "names = sorted(n for n in os.listdir('.') if n != 'program')\n"
                              "print(''.join(accepts(n) for n in names))\n";

static bool write_cases(const temp_dir *dir, const json_case *cases, size_t count) {
    bool written = temp_dir_write(dir, "program", program, strlen(program));
    for (size_t i = 0; i < count; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "%06zu", i);
        written = written && temp_dir_write(dir, name, cases[i].text, cases[i].byte_count);
    }
    return written;
}

/* Python's verdicts on all cases, one character each; false when there is no Python. */
static bool ask_python(const json_case *cases, size_t count, char *verdicts, size_t bytes) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    cr_assert(write_cases(&dir, cases, count));
    char command[512];
    (void)snprintf(command, sizeof command, "cd '%s' && python3 program 2>/dev/null", dir.path);
    FILE *output = popen(command, "re");
    cr_assert(output != NULL);
    bool answered = fgets(verdicts, (int)bytes, output) != NULL;
    (void)pclose(output);
    temp_dir_remove(&dir);
    return answered;
}

static void compare(const json_case *cases, size_t count, bool accepted) {
    char verdicts[1024] = "";
    cr_assert(lt(sz, count, sizeof verdicts));
    if (!ask_python(cases, count, verdicts, sizeof verdicts)) {
        not_tried("python3 is not installed");
    }
    cr_assert(eq(sz, strcspn(verdicts, "\n"), count));
    for (size_t i = 0; i < count; i++) {
        bool python_accepts = verdicts[i] == '1';
        bool agrees = python_accepts == accepted;
        cr_expect(agrees == cases[i].others_agree, "case %zu: %s", i, cases[i].text);
    }
}

Test(json_peers, python_accepts_what_we_accept) {
    compare(json_accepted, json_accepted_count, true);
}

Test(json_peers, python_refuses_what_we_refuse_but_for_where_we_are_stricter) {
    compare(json_refused, json_refused_count, false);
}
