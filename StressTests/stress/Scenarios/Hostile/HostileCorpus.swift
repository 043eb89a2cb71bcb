import CoreData

/// Inputs that are strange, each in a way of its own, and those that have found something: they only grow in number.
///
/// They are in the folder Corpus, a line each. Each run begins with all of them, and goes on with some of them mutated.
enum HostileCorpus {
    /// What an input is.
    enum Kind {
        /// A predicate over nodes.
        case predicate
        /// A key to sort nodes by.
        case order
        /// The URI of an object.
        case uri
        /// A place in a history, as JSON.
        case token
        /// The elements of a model.
        case model
        /// Statements that make a bad file of a sound one.
        case store
    }

    /// Stands for the identifier of the store that is asked.
    static let storeMark = "%STORE%"

    /// All of them, always in this order.
    static let entries: [(kind: Kind, text: String)] =
        lines(.predicate, PackageResources.predicates_txt) + lines(.order, PackageResources.orders_txt)
        + lines(.uri, PackageResources.uris_txt) + lines(.token, PackageResources.tokens_txt)
        + lines(.model, PackageResources.models_txt) + lines(.store, PackageResources.stores_txt)

    private static func lines(_ kind: Kind, _ file: [UInt8]) -> [(kind: Kind, text: String)] {
        let lines = String(decoding: file, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        // The last line ends as well.
        return lines.dropLast().map { (kind, String($0)) }
    }
}
