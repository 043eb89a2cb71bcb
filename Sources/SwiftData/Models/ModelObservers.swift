import Observation
import StrataLocks
import Synchronization

/// The observers of one model object.
///
/// A registrar takes 128 bytes and most objects are never observed, so it is made when a property is read under
/// observation for the first time. ``Model()`` puts one into each class.
///
/// Any thread may use it: a merge notifies the observers on the queue of the context.
@_documentation(visibility: internal)
public struct _ModelObservers: ~Copyable, Sendable {
    /// The registrar, which is set once.
    ///
    /// Its reference is counted by the one who set it, and is released in `deinit`.
    @usableFromInline let made: AtomicCell<Unmanaged<_RegistrarBox>?>

    /// Makes observers without a registrar.
    public init() { made = AtomicCell(nil) }

    deinit {
        made.load(ordering: .acquiring)?.release()
    }

    /// The registrar if a property was read under observation, or if code of the program has asked for it.
    @usableFromInline
    var registrarIfMade: ObservationRegistrar? {
        made.load(ordering: .acquiring)?._withUnsafeGuaranteedRef { $0.registrar }
    }

    /// The registrar, which is made if it is missing.
    public var registrar: ObservationRegistrar {
        if let registrarIfMade { return registrarIfMade }
        let box = Unmanaged.passRetained(_RegistrarBox())
        let (isMine, first) = made.compareExchange(
            expected: nil,
            desired: box,
            successOrdering: .releasing,
            failureOrdering: .acquiring
        )
        guard !isMine, let first else { return box._withUnsafeGuaranteedRef { $0.registrar } }
        box.release()
        return first._withUnsafeGuaranteedRef { $0.registrar }
    }

    /// Whether the access that follows may be observed.
    @inline(never)
    @usableFromInline
    var isAccessOfInterest: Bool {
        made.load(ordering: .relaxed) != nil || AccessTracking.isTracking
    }

    /// Notes the access to a property, if the access is observed.
    ///
    /// - Parameters:
    ///   - subject: The model object.
    ///   - keyPath: The property.
    @inlinable
    @inline(__always)
    public func access<Subject: Observable, Member>(
        _ subject: Subject,
        keyPath: @autoclosure () -> KeyPath<Subject, Member>
    ) {
        if isAccessOfInterest { registrar.access(subject, keyPath: keyPath()) }
    }

    /// Changes a property, and notifies its observers before and after that.
    ///
    /// - Parameters:
    ///   - subject: The model object.
    ///   - keyPath: The property.
    ///   - mutation: The change.
    /// - Returns: The result of the change.
    /// - Throws: The error of the change.
    @inlinable
    @inline(__always)
    public func withMutation<Subject: Observable, Member, Result>(
        of subject: Subject,
        keyPath: @autoclosure () -> KeyPath<Subject, Member>,
        _ mutation: () throws -> Result
    ) rethrows -> Result {
        guard let registrar = registrarIfMade else { return try mutation() }
        return try registrar.withMutation(of: subject, keyPath: keyPath(), mutation)
    }
}

/// A registrar that observers share.
@usableFromInline
final class _RegistrarBox: Sendable {
    @usableFromInline let registrar = ObservationRegistrar()
}
