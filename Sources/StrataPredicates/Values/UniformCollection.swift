import Foundation

/// A Swift collection whose members are of one type, which is checked once for all of them.
///
/// A cast of an `Any` costs more than reading a row. A fetch of a thousand objects by their IDs would spend most of its
/// time on casts.
private protocol UniformCollection {
    /// The values of the members; `nil` if their type is not a known one.
    var scalarValues: [PredicateValue]? { get }
    /// Whether the members have an order.
    static var isOrdered: Bool { get }
}

extension Array: UniformCollection {
    fileprivate var scalarValues: [PredicateValue]? { uniformValues(self) }
    fileprivate static var isOrdered: Bool { true }
}

extension Set: UniformCollection {
    fileprivate var scalarValues: [PredicateValue]? { uniformValues(self) }
    fileprivate static var isOrdered: Bool { false }
}

/// Whether a value is a Swift array or set.
func isSwiftCollection(_ any: Any) -> Bool { any is any UniformCollection }

extension ConstantMembers {
    /// Takes the members of an array or a set whose members are of one common type; `nil` for any other value.
    convenience init?(uniform any: Any?) {
        guard let collection = any as? any UniformCollection, let values = collection.scalarValues else { return nil }
        self.init(values, areOrdered: type(of: collection).isOrdered)
    }
}

/// The values that ``PredicateValue/init(scalar:)`` makes for each of the members.
private func uniformValues<Element>(_ members: some Collection<Element>) -> [PredicateValue]? {
    // Each call is made only if `Member` is `Element`.
    func all<Member>(_: Member.Type, _ value: (Member) -> PredicateValue) -> [PredicateValue] {
        members.map { value(unsafeBitCast($0, to: Member.self)) }
    }
    func references<Member: PredicateObjectReference>(_ type: Member.Type) -> [PredicateValue] {
        all(type) { .reference($0.predicateIdentity) }
    }
    let type = Element.self
    if type == String.self { return all(String.self) { .string($0) } }
    if type == Int.self { return all(Int.self) { .int(Int64($0)) } }
    if type == Int64.self { return all(Int64.self) { .int($0) } }
    if type == Int32.self { return all(Int32.self) { .int(Int64($0)) } }
    if type == Int16.self { return all(Int16.self) { .int(Int64($0)) } }
    if type == Double.self { return all(Double.self) { .number($0) } }
    if type == Date.self { return all(Date.self) { .date($0.timeIntervalSinceReferenceDate) } }
    if type == UUID.self { return all(UUID.self) { .uuid($0) } }
    if let type = type as? any PredicateObjectReference.Type { return references(type) }
    return nil
}
