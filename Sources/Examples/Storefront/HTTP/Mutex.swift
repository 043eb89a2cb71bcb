#if canImport(Glibc)
import StrataLocks

/// The mutex of `StrataLocks`, as ThreadSanitizer does not understand that of the standard library, and would see races.
typealias Mutex<Value: ~Copyable> = StrataLocks.Mutex<Value>
#endif
