// A host in Go, by cgo. Its argument is the directory of the reports; it prints the path of one.
package main

/*
#cgo pkg-config: bugpack
#include <bugpack/bindings.h>
#include <stdlib.h>

int fill(bugpack_writer *writer, void *context);
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

var frames = map[string]int{"session.json": 7, "bad.json": 3}

func sessionJSON(frames int) string {
	return fmt.Sprintf(`{"frames": %d}`, 100/(frames-3))
}

// A panic must not unwind into C: it becomes a failed entry. The context is a C string, because C must
// not keep a pointer to what Go has allocated.
//
//export fill
func fill(writer *C.bugpack_writer, context unsafe.Pointer) (result C.int) {
	defer func() {
		if caught := recover(); caught != nil {
			reason := C.CString("the provider panicked: 100% of it")
			defer C.free(unsafe.Pointer(reason))
			result = C.bugpack_fail_text(writer, reason)
		}
	}()
	text := []byte(sessionJSON(frames[C.GoString((*C.char)(context))]))
	return C.int(C.bugpack_write(writer, unsafe.Pointer(&text[0]), C.size_t(len(text))))
}

func main() {
	var options C.bugpack_options
	var session *C.bugpack_session
	var failure C.bugpack_error
	C.bugpack_options_init(&options, C.size_t(unsafe.Sizeof(options)))
	options.app_name = C.CString("viewer")
	options.report_dir = C.CString(os.Args[1])
	options.create_report_dir = true
	if C.bugpack_open(&options, &session, &failure) != C.BUGPACK_OK {
		fmt.Fprintln(os.Stderr, C.GoString(&failure.message[0]))
		os.Exit(1)
	}
	message := []byte("frame 7 of ä")
	C.bugpack_log_bytes(session, C.BUGPACK_LEVEL_WARN, C.CString("display"), unsafe.Pointer(&message[0]),
		C.size_t(len(message)))
	C.bugpack_notify_text(session, C.BUGPACK_LEVEL_WARN, C.CString("server"), nil, C.CString("100% %s"))
	for name := range frames {
		text := C.CString(name)
		if C.bugpack_provide(session, text, C.BUGPACK_PROVIDE_JSON, (*C.bugpack_provider_callback)(C.fill), unsafe.Pointer(text), &failure) != C.BUGPACK_OK {
			panic(C.GoString(&failure.message[0]))
		}
	}
	var result C.bugpack_report_result
	C.bugpack_report_result_init(&result, C.size_t(unsafe.Sizeof(result)))
	if C.bugpack_report(session, nil, &result) != C.BUGPACK_OK || result.missing_count != 1 {
		panic(C.GoString(&result.error.message[0]))
	}
	fmt.Println(C.GoString(&result.path[0]))
	C.bugpack_close(session)
}
