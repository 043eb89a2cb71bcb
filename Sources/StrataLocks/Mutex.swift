#if STRATA_TSAN
import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// A mutex with the interface of `Synchronization.Mutex`, for builds under ThreadSanitizer only.
///
/// On Linux the standard library's mutex is a futex in code that the sanitizer does not see, so it takes every access that
/// the mutex orders for a race. It does know `pthread_mutex_t`. Builds without `STRATA_TSAN` do not contain this type.
public struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // @unchecked Sendable: the value is touched only with the mutex held.
    private let handle: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    /// A mutex around a value.
    public init(_ initialValue: consuming sending Value) {
        handle = .allocate(capacity: 1)
        value = .allocate(capacity: 1)
        value.initialize(to: initialValue)
        pthread_mutex_init(handle, nil)
    }

    deinit {
        pthread_mutex_destroy(handle)
        handle.deallocate()
        value.deinitialize(count: 1)
        value.deallocate()
    }

    /// Runs `body` with the mutex held.
    public borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        pthread_mutex_lock(handle)
        defer { pthread_mutex_unlock(handle) }
        return try body(&value.pointee)
    }
}
#endif
