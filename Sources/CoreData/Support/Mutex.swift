#if canImport(Glibc)
import StrataLocks

/// The mutex of this module, which is that of `StrataLocks`; the reasons are documented there.
typealias Mutex<Value: ~Copyable> = StrataLocks.Mutex<Value>
#endif
