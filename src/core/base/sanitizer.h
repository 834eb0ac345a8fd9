/* The sanitizer this is compiled with: gcc has a macro for each, clang a feature. */
#ifndef BP_BASE_SANITIZER_H
#define BP_BASE_SANITIZER_H

#if defined(__has_feature)
#define BP_HAS_FEATURE(name) __has_feature(name)
#else
#define BP_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || BP_HAS_FEATURE(address_sanitizer)
#define BP_ADDRESS_SANITIZER 1
#else
#define BP_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || BP_HAS_FEATURE(thread_sanitizer)
#define BP_THREAD_SANITIZER 1
#else
#define BP_THREAD_SANITIZER 0
#endif

#define BP_SANITIZED (BP_ADDRESS_SANITIZER || BP_THREAD_SANITIZER)

#endif
