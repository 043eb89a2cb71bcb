import Synchronization

/// A reference that is set once, by whichever thread comes first, and read by any thread without a lock.
///
/// It has the interface of `Synchronization.AtomicLazyReference`, whose reads are calls into the standard library that look up
/// metadata: 120 ns each, against 2 ns here. The framework reads such references for each object that it looks up.
package struct OnceReference<Instance: AnyObject>: ~Copyable {
    /// The address of the instance, which is retained; 0 as long as there is none.
    @usableFromInline let address: Atomic<UInt>

    /// A reference to nothing yet.
    @inlinable
    package init() {
        address = Atomic(0)
    }

    @inlinable
    deinit {
        guard let instance = UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring)) else { return }
        Unmanaged<Instance>.fromOpaque(instance).release()
    }

    /// What the reference was set to; `nil` if it has not been set.
    @inlinable
    @inline(__always)
    package func load() -> Instance? {
        guard let instance = UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring)) else { return nil }
        return Unmanaged<Instance>.fromOpaque(instance).takeUnretainedValue()
    }

    /// Sets the reference, unless it has been set already.
    ///
    /// - Returns: What the reference is set to now: `instance`, or what another thread has set first.
    @inlinable
    package func storeIfNil(_ instance: Instance) -> Instance {
        let retained = Unmanaged.passRetained(instance)
        let (isSet, former) = address.compareExchange(
            expected: 0,
            desired: UInt(bitPattern: retained.toOpaque()),
            ordering: .acquiringAndReleasing
        )
        guard !isSet else { return instance }
        retained.release()
        guard let first = UnsafeRawPointer(bitPattern: former) else { return instance }
        return Unmanaged<Instance>.fromOpaque(first).takeUnretainedValue()
    }
}

// @unchecked Sendable: the address is atomic, and what it leads to is Sendable and owned until the reference is destroyed.
extension OnceReference: @unchecked Sendable where Instance: Sendable {}
