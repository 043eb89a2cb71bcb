import Foundation
import StrataLocks

/// Names one version of the data, to which contexts can be pinned.
///
/// See <doc:Concurrency>.
///
/// ```swift
/// try context.setQueryGenerationFrom(.current)
/// let count = try context.count(for: request)
/// let venues = try context.fetch(request)  // as many, whoever saves meanwhile
/// try context.setQueryGenerationFrom(nil)
/// ```
///
/// A token keeps its version readable, and a read transaction open, as long as the token exists. Immutable; any thread
/// may use it. Equal tokens name the same version.
///
/// An archived token can be read in the process that made it, as long as the version exists there.
open class NSQueryGenerationToken: NSObject, NSCopying, NSSecureCoding, @unchecked Sendable {
    // @unchecked Sendable: `meaning` is a constant, and a subclass cannot be made: there is no public initialiser.

    enum Meaning: Equatable {
        /// The newest version at the time when it is first read.
        case current
        case generation(PinnedGeneration)
        /// A version that no longer exists.
        case gone(String)

        static func == (lhs: Meaning, rhs: Meaning) -> Bool {
            switch (lhs, rhs) {
            case (.current, .current): true
            case (.generation(let left), .generation(let right)): left === right
            case (.gone(let left), .gone(let right)): left == right
            default: false
            }
        }
    }

    let meaning: Meaning

    init(_ meaning: Meaning) { self.meaning = meaning }

    private static let currentToken = NSQueryGenerationToken(.current)

    /// Stands for the newest version at the time of a context's first read after it was pinned.
    open class var current: NSQueryGenerationToken { currentToken }

    /// Whether the other token names the same version.
    open override func isEqual(_ object: Any?) -> Bool { (object as? NSQueryGenerationToken)?.meaning == meaning }

    open override var hash: Int {
        switch meaning {
        case .current: 0
        case .generation(let generation): generation.number
        case .gone(let name): name.hashValue
        }
    }

    /// The token itself, which is immutable.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: The token itself.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    open override var description: String {
        switch meaning {
        case .current: "<NSQueryGenerationToken: current>"
        case .generation(let generation): "<NSQueryGenerationToken: \(generation.number)>"
        case .gone: "<NSQueryGenerationToken: of a version that is gone>"
        }
    }

    // MARK: - Archiving

    /// True.
    public static var supportsSecureCoding: Bool { true }

    private static let nameKey = "generation"
    private static let currentName = "current"
    /// Identifies this process.
    private static let process = UUID().uuidString

    /// The archived generations by their names, as long as they exist.
    private static let archived = Locked<[String: WeakGeneration]>([:])

    private struct WeakGeneration {
        weak var generation: PinnedGeneration?
    }

    /// Archives the token.
    ///
    /// The archive names the version of the store. Only this process can find that version again, as long as it exists.
    ///
    /// - Parameter coder: The archiver to write to.
    open func encode(with coder: NSCoder) {
        coder.encode(name as NSString, forKey: Self.nameKey)
    }

    private var name: String {
        switch meaning {
        case .current: return Self.currentName
        case .gone(let name): return name
        case .generation(let generation):
            let name = "\(Self.process)/\(generation.number)"
            Self.archived.withLock { known in
                known = known.filter { $0.value.generation != nil }
                known[name] = WeakGeneration(generation: generation)
            }
            return name
        }
    }

    /// Reads an archived token.
    ///
    /// If the version no longer exists, or belongs to another process, the token is read as well, but no context can be
    /// pinned to it.
    ///
    /// - Parameter coder: The archive to read from. If it has no token, the result is `nil`.
    public required init?(coder: NSCoder) {
        guard let name = coder.decodeObject(of: NSString.self, forKey: Self.nameKey) as String? else { return nil }
        if name == Self.currentName {
            meaning = .current
        } else if let generation = Self.archived.withLock({ $0[name]?.generation }) {
            meaning = .generation(generation)
        } else {
            meaning = .gone(name)
        }
    }
}
