#if STRATA_TSAN
import StrataLocks

/// In builds under ThreadSanitizer this module's mutexes are ones that the sanitizer knows.
typealias Mutex<Value: ~Copyable> = StrataLocks.Mutex<Value>
#endif
