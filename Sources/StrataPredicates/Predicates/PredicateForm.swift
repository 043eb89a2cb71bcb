/// The content of a predicate, the same for predicates of this module and of Foundation.
///
/// A junction of one member is replaced by that member, and an empty one by a constant: they mean that and print like
/// that.
package enum PredicateForm {
    case constant(Bool)
    case comparison(NSComparisonPredicate)
    case not(NSPredicate)
    case and([NSPredicate])
    case or([NSPredicate])
    /// Code, or a subclass of another module.
    ///
    /// It can only evaluate itself.
    case block(NSPredicate)

    package init(_ predicate: NSPredicate) {
        if let comparison = predicate as? NSComparisonPredicate {
            self = .comparison(comparison)
        } else if let compound = predicate as? NSCompoundPredicate {
            let meant = Self.unwrapped(compound)
            // It is another kind of predicate, so the recursion ends here.
            self = (meant as? NSCompoundPredicate).map(Self.junction) ?? PredicateForm(meant)
        } else if Self.plain(predicate, equals: Self.truth) {
            self = .constant(true)
        } else if Self.plain(predicate, equals: Self.falsehood) {
            self = .constant(false)
        } else {
            self = .block(predicate)
        }
    }

    private static func junction(_ compound: NSCompoundPredicate) -> PredicateForm {
        let members = compound.subpredicates.compactMap { $0 as NSPredicate }
        switch compound.compoundPredicateType {
        case .not: return members.first.map { .not($0) } ?? .constant(false)
        case .and where members.isEmpty: return .constant(true)
        case .or where members.isEmpty: return .constant(false)
        case .and where members.count > 1: return .and(members)
        case .or where members.count > 1: return .or(members)
        // `unwrapped` has removed this case.
        default: return .block(members[0])
        }
    }

    /// The innermost member of nested junctions of one member.
    private static func unwrapped(_ compound: NSCompoundPredicate) -> NSPredicate {
        var current = compound
        while current.compoundPredicateType != .not, current.subpredicates.count == 1 {
            guard let inner = current.subpredicates[0] as? NSCompoundPredicate else {
                return current.subpredicates[0]
            }
            current = inner
        }
        return current
    }

    // nonisolated(unsafe): predicates with a constant value are immutable; Foundation does not declare them Sendable.
    private nonisolated(unsafe) static let truth = NSPredicate(value: true)
    private nonisolated(unsafe) static let falsehood = NSPredicate(value: false)

    /// Whether a predicate is a constant.
    ///
    /// Foundation's constants can be recognised only by equality.
    private static func plain(_ predicate: NSPredicate, equals constant: NSPredicate) -> Bool {
        type(of: predicate) == NSPredicate.self && constant.isEqual(predicate)
    }

    var isJunction: Bool {
        switch self {
        case .and, .or: true
        default: false
        }
    }
}
