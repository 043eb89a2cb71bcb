import Foundation
import Observation
import StrataLocks
import Synchronization

/// Finds out whether the current thread is inside of `withObservationTracking`; the library has no function for that.
///
/// Each thread has a separate probe. An access to the probe's property does nothing outside of tracking. Inside, the list
/// of accesses hashes the key path of the property, and with it an argument of the key path, which notes that. The thread
/// then gets a new probe, so that nothing stays registered with this one.
///
/// If a version of the library hashes no arguments, then the first use finds that out, and each access counts as
/// tracked.
final class AccessProbe: Observable {
    /// The argument of the key path, which notes that it is hashed.
    private struct Argument: Hashable {
        func hash(into hasher: inout Hasher) { AccessProbe.current._withUnsafeGuaranteedRef { $0.isHashed = true } }
    }

    // Unchecked, since each read of a model comes here.
    @exclusivity(unchecked) private var isHashed = false
    /// Whether a tracked access to a probe is found.
    @exclusivity(unchecked) private var isReliable = true
    private let property: KeyPath<AccessProbe, Int> = \AccessProbe[Argument()]
    // The last one, because the compiler knows the places of properties only up to one of a type whose size it does not
    // know.
    private let registrar = ObservationRegistrar()

    private subscript(argument: Argument) -> Int { 0 }

    /// The thread-local key and 1; 0 before its first use.
    private static let knownKey = AtomicCell<UInt32>(0)

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { probe in
            // The key holds a reference, which it has from `renew`.
            if let probe { Unmanaged<AccessProbe>.fromOpaque(probe).release() }
        }
        precondition(status == 0, "SwiftData needs a thread-local key, and the process has used up all: \(status)")
        knownKey.store(UInt32(key) + 1, ordering: .relaxed)
        return key
    }()

    /// The probe of the thread, if it has one.
    private static var known: Unmanaged<AccessProbe>? {
        @inline(__always) get {
            let key = knownKey.load(ordering: .relaxed)
            guard key > 0, let known = pthread_getspecific(key - 1) else { return nil }
            return Unmanaged.fromOpaque(known)
        }
    }

    /// The probe of the thread.
    private static var current: Unmanaged<AccessProbe> { known ?? renew() }

    /// Gives the thread a new probe.
    @discardableResult
    private static func renew() -> Unmanaged<AccessProbe> {
        let former = pthread_getspecific(key).map { Unmanaged<AccessProbe>.fromOpaque($0) }
        let probe = Unmanaged.passRetained(AccessProbe())
        pthread_setspecific(key, probe.toOpaque())
        former?.release()
        return probe
    }

    private static let areReliable = withObservationTracking {
        renew()._withUnsafeGuaranteedRef { $0.isTracked }
    } onChange: {
    }

    @inline(never)
    private static func beginToProbe() -> Unmanaged<AccessProbe> {
        let areReliable = areReliable
        let probe = renew()
        probe._withUnsafeGuaranteedRef { $0.isReliable = areReliable }
        return probe
    }

    /// Whether the current thread tracks accesses.
    static var isTracking: Bool {
        let probe = known ?? beginToProbe()
        guard probe._withUnsafeGuaranteedRef({ $0.isTracked }) else {
            return !probe._withUnsafeGuaranteedRef { $0.isReliable }
        }
        _ = beginToProbe()
        return true
    }

    private var isTracked: Bool {
        isHashed = false
        registrar.access(self, keyPath: property)
        return isHashed
    }
}
