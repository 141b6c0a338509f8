//! The agent's only error type: the attempted operation, its object, and the kernel's reason.

use std::fmt;

use rustix::io::Errno;

/// A result whose failure is an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// A complete error message: `adding netem 1: to e0 in wire: EINVAL (Invalid argument): ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// Create an error that no system call reported.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Create the error that `attempt` failed because of `cause`.
    pub fn because(attempt: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self(format!("{attempt}: {cause}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Adds the attempt to an error that a caller passes up.
pub trait Attempt<T> {
    /// Convert a failure into an [`Error`] that begins with the attempted operation.
    fn attempt<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: std::error::Error + 'static> Attempt<T> for std::result::Result<T, E> {
    fn attempt<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| Error::because(context(), reason(&error)))
    }
}

/// Return what an error says; one of the kernel with its symbol.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let of_kernel = error.downcast_ref().copied().or_else(|| Errno::from_io_error(error.downcast_ref()?));
    of_kernel.map_or_else(|| error.to_string(), describe)
}

/// Format `ECONNREFUSED (Connection refused)`.
pub fn describe(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    match name(errno) {
        Some(name) => format!("{name} ({text})"),
        None => format!("errno {} ({text})", errno.raw_os_error()),
    }
}

macro_rules! errno_names {
    ($($name:ident)+) => {
        /// Return the symbol of an error number that networking or file calls return.
        fn name(errno: Errno) -> Option<&'static str> {
            match errno.raw_os_error() {
                $(libc::$name => Some(stringify!($name)),)+
                _ => None,
            }
        }
    };
}

errno_names! {
    EPERM ENOENT EINTR EIO ENXIO E2BIG EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV ENOTDIR
    EISDIR EINVAL ENFILE EMFILE EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE ENAMETOOLONG ENOSYS
    ENOTEMPTY ELOOP ENODATA EPROTO EOVERFLOW ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT
    EPROTONOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH
    ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ETIMEDOUT ECONNREFUSED EHOSTDOWN
    EHOSTUNREACH EALREADY EINPROGRESS ESTALE EDQUOT ECANCELED ENOTUNIQ EBADFD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_attempt_the_errno_and_its_meaning() {
        let failed: std::result::Result<(), Errno> = Err(Errno::NOENT);
        let error = failed.attempt(|| "adding veth e0 in wire").unwrap_err();
        assert_eq!(error.to_string(), "adding veth e0 in wire: ENOENT (No such file or directory)");
    }

    #[test]
    fn an_unknown_errno_keeps_its_number() {
        assert!(describe(Errno::from_raw_os_error(4000)).starts_with("errno 4000 ("));
    }
}
