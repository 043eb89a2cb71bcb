#if STRATA_TSAN
import StrataLocks

/// In builds under ThreadSanitizer this program's mutexes are ones that the sanitizer knows, too.
typealias Mutex<Value: ~Copyable> = StrataLocks.Mutex<Value>
#endif
