#include "macos/ports.h"

#include <mach/mach.h>
#include <mach/mach_error.h>
#include <stdio.h>

/* The references of one name: those of send rights, and of rights whose port has died. */
static size_t references_of(mach_port_name_t name, mach_port_type_t type) {
    static const struct {
        mach_port_type_t type;
        mach_port_right_t right;
    } counted[] = {{MACH_PORT_TYPE_SEND, MACH_PORT_RIGHT_SEND},
                   {MACH_PORT_TYPE_DEAD_NAME, MACH_PORT_RIGHT_DEAD_NAME}};
    size_t sum = 0;
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        mach_port_urefs_t references = 0;
        if ((type & counted[i].type) != 0 &&
            mach_port_get_refs(mach_task_self(), name, counted[i].right, &references) ==
                KERN_SUCCESS) {
            sum += references;
        }
    }
    return sum;
}

static void release(void *list, size_t bytes) {
    (void)vm_deallocate(mach_task_self(), (vm_address_t)list, bytes);
}

static size_t size_of_table(void) {
    ipc_info_space_t space;
    ipc_info_name_array_t names = NULL;
    ipc_info_tree_name_array_t tree = NULL;
    mach_msg_type_number_t name_count = 0, tree_count = 0;
    if (mach_port_space_info(mach_task_self(), &space, &names, &name_count, &tree, &tree_count) !=
        KERN_SUCCESS) {
        return 0;
    }
    release(names, name_count * sizeof *names);
    release(tree, tree_count * sizeof *tree);
    return name_count;
}

bool macos_ports_count(macos_ports *ret_ports) {
    mach_port_name_array_t names = NULL;
    mach_port_type_array_t types = NULL;
    mach_msg_type_number_t name_count = 0, type_count = 0;
    kern_return_t result =
        mach_port_names(mach_task_self(), &names, &name_count, &types, &type_count);
    if (result != KERN_SUCCESS) {
        (void)printf("     mach_port_names failed: %s (%d)\n", mach_error_string(result),
                     (int)result);
        return false;
    }
    macos_ports ports = {.names = name_count};
    for (mach_msg_type_number_t i = 0; i < name_count && i < type_count; i++) {
        ports.references += references_of(names[i], types[i]);
    }
    release(names, name_count * sizeof *names);
    release(types, type_count * sizeof *types);
    ports.table = size_of_table();
    *ret_ports = ports;
    return true;
}
