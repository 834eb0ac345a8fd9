#ifndef FAKE_MACH_MACH_ERROR_H
#define FAKE_MACH_MACH_ERROR_H

char *mach_error_string(int error);

#endif
