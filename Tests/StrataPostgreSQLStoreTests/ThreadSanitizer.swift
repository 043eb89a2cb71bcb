#if canImport(Glibc)
import StrataLocks

/// This module's mutexes are those of the modules that it tests, which ThreadSanitizer knows.
typealias Mutex<Value: ~Copyable> = StrataLocks.Mutex<Value>
#endif
