// A host in Rust. The structs are declared as far as they are used: the library takes any size that
// ends on a member. Its argument is the directory of the reports; it prints the path of one.
use std::ffi::{c_void, CStr, CString};
use std::os::raw::{c_char, c_int};
use std::ptr::null;

#[repr(C)]
struct Options {
    struct_size: usize,
    app_name: *const c_char,
    app_version: *const c_char,
    app_build_id: *const c_char,
    report_dir: *const c_char,
    create_report_dir: bool,
}
const OPTIONS_BYTES: usize = 5 * std::mem::size_of::<usize>() + 1; // without the padding at its end

#[repr(C)]
struct BugpackError {
    status: c_int,
    system_errno: c_int,
    message: [c_char; 512],
}

#[repr(C)]
struct ReportResult {
    struct_size: usize,
    status: c_int,
    error: BugpackError,
    missing_count: u32,
    zip_bytes: u64,
    elapsed_ns: u64,
    path: [c_char; 4096],
}

type Provider = extern "C" fn(*mut c_void, *mut c_void) -> c_int;

#[link(name = "bugpack")]
extern "C" {
    fn bugpack_open(options: *const Options, session: *mut *mut c_void, error: *mut BugpackError) -> c_int;
    fn bugpack_close(session: *mut c_void);
    fn bugpack_log_bytes(session: *mut c_void, level: c_int, channel: *const c_char, message: *const c_void, bytes: usize);
    fn bugpack_notify_text(session: *mut c_void, level: c_int, source: *const c_char, ret_retained: *mut u64,
        text: *const c_char);
    fn bugpack_provide(session: *mut c_void, name: *const c_char, kind: c_int, provider: Provider, context: *mut c_void, error: *mut BugpackError) -> c_int;
    fn bugpack_write(writer: *mut c_void, bytes: *const c_void, count: usize) -> c_int;
    fn bugpack_fail_text(writer: *mut c_void, text: *const c_char) -> c_int;
    fn bugpack_report(session: *mut c_void, request: *const c_void, result: *mut ReportResult, error: *mut c_void) -> c_int;
}

fn session_json(frames: u32) -> String {
    format!("{{\"frames\": {}}}", 100 / (frames - 3))
}

// A panic must not unwind into C: it becomes a failed entry.
extern "C" fn fill(writer: *mut c_void, context: *mut c_void) -> c_int {
    let frames = unsafe { *(context as *const u32) };
    match std::panic::catch_unwind(|| session_json(frames)) {
        Ok(text) => unsafe { bugpack_write(writer, text.as_ptr() as *const c_void, text.len()) },
        Err(_) => unsafe { bugpack_fail_text(writer, text("the provider panicked: 100% of it").as_ptr()) },
    }
}

fn text(of: &str) -> CString {
    CString::new(of).unwrap()
}

fn main() {
    let (name, directory) = (text("viewer"), text(&std::env::args().nth(1).unwrap()));
    let options = Options {
        struct_size: OPTIONS_BYTES,
        app_name: name.as_ptr(),
        app_version: null(),
        app_build_id: null(),
        report_dir: directory.as_ptr(),
        create_report_dir: true,
    };
    let (good, bad) = (7u32, 3u32);
    let as_context = |frames: &u32| frames as *const u32 as *mut c_void;
    unsafe {
        let mut error: BugpackError = std::mem::zeroed();
        let mut session = std::ptr::null_mut();
        if bugpack_open(&options, &mut session, &mut error) != 0 {
            eprintln!("{}", CStr::from_ptr(error.message.as_ptr()).to_string_lossy());
            std::process::exit(1);
        }
        let message = "frame 7 of \u{e4}";
        bugpack_log_bytes(session, 4, text("display").as_ptr(), message.as_ptr() as *const c_void, message.len());
        bugpack_notify_text(session, 4, text("server").as_ptr(), std::ptr::null_mut(), text("100% %s").as_ptr());
        for (name, frames) in [("session.json", &good), ("bad.json", &bad)] {
            assert_eq!(bugpack_provide(session, text(name).as_ptr(), 0, fill, as_context(frames), &mut error), 0);
        }
        let mut result: ReportResult = std::mem::zeroed();
        result.struct_size = std::mem::size_of::<ReportResult>();
        assert_eq!(bugpack_report(session, null(), &mut result, std::ptr::null_mut()), 0);
        assert_eq!(result.missing_count, 1);
        println!("{}", CStr::from_ptr(result.path.as_ptr()).to_string_lossy());
        bugpack_close(session);
    }
}
