import Foundation

/// The fetch that a context is making, in the form in which a store of the program takes it.
///
/// Core Data passes requests on. A store of the program takes the description from which the request was made.
struct DescribedFetch: @unchecked Sendable {
    // @unchecked Sendable: it is used during one fetch, on the thread of the fetch.

    @TaskLocal static var current: DescribedFetch?

    /// The predicate of the request.
    let predicate: NSPredicate?
    /// The `FetchDescriptor`.
    let descriptor: Any

    /// The description of a request that has this predicate; `nil` if the request was made for another purpose.
    static func descriptor<T: PersistentModel>(_ type: T.Type, _ predicate: NSPredicate?) -> FetchDescriptor<T>? {
        guard let current, current.predicate === predicate else { return nil }
        return current.descriptor as? FetchDescriptor<T>
    }
}
