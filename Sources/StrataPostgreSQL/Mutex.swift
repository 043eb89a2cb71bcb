#if canImport(Glibc)
import StrataLocks

/// The mutex of this module is that of `StrataLocks`, which explains the reason.
typealias Mutex<Value: ~Copyable> = StrataLocks.Mutex<Value>
#endif
