#if canImport(Glibc)
import StrataLocks

/// This module's mutexes are those of `StrataLocks`, see there for why.
typealias Mutex<Value: ~Copyable> = StrataLocks.Mutex<Value>
#endif
