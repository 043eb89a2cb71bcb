import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

/// The keys of user info under which a model has settings for one database.
package struct SQLHints: Sendable {
    /// The name of the table of a root entity, or of a many-to-many relationship.
    package let table: String
    /// The name of the column of an attribute, or of a to-one relationship.
    package let column: String
    /// The foldings in which the text of an attribute is also kept: `c`, `d` or `cd`, with commas between several.
    package let folded: String
    /// The beginning of names that the store itself uses.
    package let reservedPrefix: String
    /// Columns that each table has of itself.
    package let reservedColumns: Set<String>
    /// The longest name, in bytes.
    package let longestName: Int

    package init(
        table: String,
        column: String,
        folded: String,
        reservedPrefix: String,
        reservedColumns: Set<String>,
        longestName: Int
    ) {
        self.table = table
        self.column = column
        self.folded = folded
        self.reservedPrefix = reservedPrefix
        self.reservedColumns = reservedColumns
        self.longestName = longestName
    }

    /// The name in a user info; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - key: Whether the name is that of a table or of a column.
    ///   - userInfo: The user info.
    ///   - subject: The name of the entity or property in errors.
    /// - Returns: The name.
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) for a name that is not possible.
    package func name(for key: KeyPath<SQLHints, String>, in userInfo: [String: String]?, of subject: String) throws
        -> String?
    {
        guard let name = userInfo?[self[keyPath: key]] else { return nil }
        let reason: String
        if name.isEmpty || name.utf8.contains(0) {
            reason = "is empty, or has the character U+0000"
        } else if name.utf8.count > longestName {
            reason = "is longer than \(longestName) bytes"
        } else if name.lowercased().hasPrefix(reservedPrefix) {
            reason = "begins with \(reservedPrefix), as names of the store itself do"
        } else if key == \.column, reservedColumns.contains(name) {
            reason = "is the name of a column that each table has of itself"
        } else {
            return name
        }
        throw Self.refused("\"\(self[keyPath: key])\" of \(subject) \(reason). Give it another name.")
    }

    /// The foldings in which the text of an attribute is kept, in a fixed order.
    ///
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if the text is not valid, or if the attribute is not
    ///   plain text.
    package func foldings(of slot: Slot, in layout: EntityLayout) throws -> [StringFolding] {
        guard let text = layout.propertyInfo[slot.name]?[folded] else { return [] }
        let subject = "\"\(folded)\" of \(layout.name).\(slot.name)"
        guard slot.type == .string, !slot.isDerived else {
            throw Self.refused("\(subject) is for attributes of type String that are not derived.")
        }
        var foldings: Set<StringFolding> = []
        for part in text.split(separator: ",").map({ $0.trimmingCharacters(in: .whitespaces) }) {
            guard let folding = StringFolding.named(part) else {
                throw Self.refused(
                    "\(subject) is \"\(text)\"; it may be c, d or cd, or several of them with commas in between."
                )
            }
            foldings.insert(folding)
        }
        return foldings.sorted { $0.rawValue < $1.rawValue }
    }

    private static func refused(_ text: String) -> CocoaError {
        CocoaError.described(.persistentStoreIncompatibleSchema, userInfo: [NSLocalizedDescriptionKey: text])
    }
}

extension StringFolding {
    /// The letters in the brackets of a predicate for a folding by case, accents or both.
    package var letters: String { (contains(.case) ? "c" : "") + (contains(.diacritics) ? "d" : "") }

    fileprivate static func named(_ letters: String) -> StringFolding? {
        [.case, .diacritics, [.case, .diacritics]].first { $0.letters == letters }
    }
}
