import StrataPredicates
import StrataRows

/// The new objects of one entity by the value of one attribute.
///
/// An object is named by its position in the list of changes. A value is known by its code only, so an answer may contain
/// objects with other values, but it lacks none.
struct PendingValues {
    /// The entity; the objects of its sub-entities belong to it.
    let layout: EntityLayout
    let attribute: PredicateAttribute
    /// The code of each object's value, by position, or one of the marks.
    private var codes: [Int] = []
    /// The first link of each code's chain.
    private var chains = KeyMap<Int32>()
    private var links: [Link] = []
    /// The positions of objects whose value was not known at some time.
    private var unknown: [Int32] = []

    private struct Link {
        let position: Int32
        /// The next link of the chain; below 0 at the end.
        let next: Int32
    }

    /// The mark of an object that is not looked for: it is of another entity, or is not new.
    private static let absent = 0
    /// The mark of an object whose values are not loaded.
    private static let notLoaded = 1
    /// The least number above 0 that is no mark.
    static let firstCode = 2

    static func isMark(_ code: Int) -> Bool { code == absent || code == notLoaded }

    init(_ attribute: PredicateAttribute, of layout: EntityLayout) {
        self.attribute = attribute
        self.layout = layout
    }

    /// The work of changes that have been replaced since, which a new index would not have.
    var isWorn: Bool { links.count + unknown.count > 2 * codes.count + 1024 }

    /// Notes the value of an object that is in the list since then, or has changed.
    ///
    /// - Parameters:
    ///   - object: The object.
    ///   - isPresent: Whether the object is looked for by its value.
    ///   - position: Its position in the list of changes.
    mutating func note(_ object: NSManagedObject, isPresent: Bool, at position: Int) {
        let code = isPresent ? code(of: object) : Self.absent
        if position == codes.count {
            codes.append(code)
        } else {
            // The former link stays in its chain. A look-up leaves it out, because its code is not that of the object.
            if codes[position] == code { return }
            codes[position] = code
        }
        switch code {
        case Self.absent: break
        case Self.notLoaded: unknown.append(Int32(position))
        default:
            let key = Int64(code)
            links.append(Link(position: Int32(position), next: chains[key] ?? -1))
            chains.set(Int32(links.count - 1), for: key)
        }
    }

    private func code(of object: NSManagedObject) -> Int {
        guard object.layout.isKind(of: layout) else { return Self.absent }
        guard object.flags.isDisjoint(with: .fault), let row = object.current else { return Self.notLoaded }
        return ValueQuestion.code(of: row.predicateValue(of: attribute))
    }

    /// The positions of the objects that may have one of the values; a position may be there more than once.
    ///
    /// - Parameters:
    ///   - wanted: The codes of the values.
    ///   - limit: The most objects to look at.
    /// - Returns: The positions; `nil` if there may be more objects than `limit`.
    func positions(of wanted: [Int], atMost limit: Int) -> [Int32]? {
        guard unknown.count <= limit else { return nil }
        var found = unknown.filter { codes[Int($0)] == Self.notLoaded }
        var count = unknown.count
        for code in wanted {
            var index = chains[Int64(code)] ?? -1
            while index >= 0 {
                count += 1
                guard count <= limit else { return nil }
                let link = links[Int(index)]
                if codes[Int(link.position)] == code { found.append(link.position) }
                index = link.next
            }
        }
        return found
    }

    /// Whether the index has noted the object at a position as it is.
    func isRight(about object: NSManagedObject, isPresent: Bool, at position: Int) -> Bool {
        codes[position] == (isPresent ? code(of: object) : Self.absent)
    }
}
