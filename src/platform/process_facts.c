#include "platform/process_facts.h"

#include <stdlib.h>

void bp_process_facts_release(bp_process_facts *facts) {
    bp_buffer_release(&facts->command_line);
    free(facts->executable);
    free(facts->working_directory);
    free(facts->cgroup);
    free(facts->limits);
    for (size_t i = 0; i < facts->object_count; i++) {
        free(facts->objects[i].path);
    }
    free(facts->objects);
    *facts = (bp_process_facts){0};
}
