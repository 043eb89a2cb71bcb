import CoreData

/// Unusual inputs, each in its own way, and inputs that have found a fault.
///
/// They are only added to, never removed.
///
/// They are in the folder Corpus, one a line. Each run begins with all of them, and goes on with mutations of some.
enum HostileCorpus {
    /// A placeholder for the identifier of the store that is asked.
    static let storeMark = "%STORE%"

    /// All entries, always in this order.
    static let entries: [(kind: HostileInputs.Kind, text: String)] =
        lines(.predicates, PackageResources.predicates_txt) + lines(.orders, PackageResources.orders_txt)
        + lines(.uris, PackageResources.uris_txt) + lines(.tokens, PackageResources.tokens_txt)
        + lines(.models, PackageResources.models_txt) + lines(.files, PackageResources.stores_txt)

    /// The entry that an input is, if it is one.
    static func entry(_ number: Int) -> (kind: HostileInputs.Kind, text: String)? {
        // At first, every second input is an entry, so that short runs try other inputs as well.
        number % 2 == 0 && number / 2 <= entries.count ? entries[number / 2 - 1] : nil
    }

    private static func lines(_ kind: HostileInputs.Kind, _ file: [UInt8]) -> [(kind: HostileInputs.Kind, text: String)]
    {
        let lines = String(decoding: file, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        // The last line ends with a newline too, so an empty piece follows it.
        return lines.dropLast().map { (kind, String($0)) }
    }
}
