import StrataRows

/// How one database declares the columns of tables.
package struct SQLColumnRules: Sendable {
    /// The declared type of the column for an attribute.
    package let type: @Sendable (AttributeType) -> String
    /// The place of the columns for attributes of a type in a table: those with a smaller number come first.
    ///
    /// Integers, keys and positions come before all of them.
    package let place: @Sendable (AttributeType) -> Int
    /// The declared type of keys, numbers of entities and positions.
    package let keyType: String
    /// The most columns that a table may have.
    package let most: Int
    /// Whether values of attributes with external storage have a tag in front, which says whether a file has the data.
    package let tagsExternalData: Bool

    package init(
        type: @escaping @Sendable (AttributeType) -> String,
        place: @escaping @Sendable (AttributeType) -> Int,
        keyType: String,
        most: Int,
        tagsExternalData: Bool
    ) {
        self.type = type
        self.place = place
        self.keyType = keyType
        self.most = most
        self.tagsExternalData = tagsExternalData
    }

    /// The types whose columns are grouped, in the order of their places.
    package var groups: [[AttributeType]] {
        Dictionary(grouping: AttributeType.allCases.filter { $0.slotKind != .int }, by: place)
            .sorted { $0.key < $1.key }.map(\.value)
    }
}
