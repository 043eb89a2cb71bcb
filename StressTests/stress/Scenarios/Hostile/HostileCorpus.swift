import CoreData

/// Inputs that are strange, each in a way of its own, and those that have found something: they only grow in number.
///
/// They are in the folder Corpus, a line each. Each run begins with all of them, and goes on with some of them mutated.
enum HostileCorpus {
    /// Stands for the identifier of the store that is asked.
    static let storeMark = "%STORE%"

    /// All of them, always in this order.
    static let entries: [(kind: HostileInputs.Kind, text: String)] =
        lines(.predicates, PackageResources.predicates_txt) + lines(.orders, PackageResources.orders_txt)
        + lines(.uris, PackageResources.uris_txt) + lines(.tokens, PackageResources.tokens_txt)
        + lines(.models, PackageResources.models_txt) + lines(.files, PackageResources.stores_txt)

    /// The one that an input is, if it is one.
    static func entry(_ number: Int) -> (kind: HostileInputs.Kind, text: String)? {
        // Every second one at first, so that short runs try others as well.
        number % 2 == 0 && number / 2 <= entries.count ? entries[number / 2 - 1] : nil
    }

    private static func lines(_ kind: HostileInputs.Kind, _ file: [UInt8]) -> [(kind: HostileInputs.Kind, text: String)]
    {
        let lines = String(decoding: file, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        // The last line ends as well.
        return lines.dropLast().map { (kind, String($0)) }
    }
}
