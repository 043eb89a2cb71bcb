import CoreData

/// The models that other programs have made: those of Apple's stores, and what lies beside the migrations.
package enum ModelFixtures {
    /// The files of models, below the folder of fixtures.
    package static let paths: [String] = {
        let files = Fixtures.roots.flatMap { root -> [String] in
            FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String } ?? []
        }
        return Set(files).filter { $0.hasSuffix(".contents.xml") || $0.hasSuffix("/contents") || $0.hasSuffix(".mom") }
            .sorted()
    }()

    /// A model with something of everything that a file can say.
    package static let everything = """
        <entity name="Place" representedClassName="Guide.Place" isAbstract="YES" versionHashModifier="2" syncable="YES">
            <attribute name="name" attributeType="String" defaultValueString="a &lt;b&gt; &amp; &quot;c&quot;&#10;" \
        minValueString="2" maxValueString="40" regularExpressionString="[a-z &quot;]*">
                <userInfo><entry key="label" value="Name &amp; title"/></userInfo>
            </attribute>
            <attribute name="nameLength" optional="YES" attributeType="String" derived="YES" derivationExpression="canonical:(name)"/>
            <attribute name="i16" attributeType="Integer 16" defaultValueString="-3" minValueString="-5" maxValueString="5"/>
            <attribute name="i32" optional="YES" attributeType="Integer 32" defaultValueString="70000" elementID="former"/>
            <attribute name="i64" optional="YES" attributeType="Integer 64" defaultValueString="5000000000" versionHashModifier="x"/>
            <attribute name="price" optional="YES" attributeType="Decimal" defaultValueString="12.5" minValueString="0.5"/>
            <attribute name="share" optional="YES" attributeType="Double" defaultValueString="0.1"/>
            <attribute name="ratio" optional="YES" attributeType="Float" defaultValueString="0.1"/>
            <attribute name="isOpen" attributeType="Boolean" defaultValueString="YES"/>
            <attribute name="opened" optional="YES" attributeType="Date" defaultDateTimeInterval="1234.5" \
        minDateTimeInterval="-10" maxDateTimeInterval="1000000"/>
            <attribute name="photo" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>
            <attribute name="token" optional="YES" attributeType="UUID" defaultValueString="B7E57D1C-55D1-4C3A-9B0E-0A2F3D1C5E77" \
        preserveAfterDeletion="YES"/>
            <attribute name="site" optional="YES" attributeType="URI" defaultValueString="https://example.org/a?b=c&amp;d"/>
            <attribute name="tags" optional="YES" attributeType="Transformable" valueTransformerName="TagTransformer" customClassName="Tags"/>
            <attribute name="scratch" optional="YES" transient="YES"/>
            <attribute name="address" optional="YES" attributeType="Composite" composite="Address"/>
            <relationship name="city" optional="YES" maxCount="1" deletionRule="Deny" destinationEntity="City" inverseName="places" \
        inverseEntity="City"/>
            <relationship name="near" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Place" inverseName="near" \
        inverseEntity="Place"/>
            <fetchIndex name="byName">
                <fetchIndexElement property="name" type="Binary" order="ascending"/>
                <fetchIndexElement property="i32" type="Binary" order="descending"/>
            </fetchIndex>
            <uniquenessConstraints>
                <uniquenessConstraint><constraint value="token"/></uniquenessConstraint>
                <uniquenessConstraint><constraint value="name"/><constraint value="city"/></uniquenessConstraint>
            </uniquenessConstraints>
            <userInfo><entry key="color" value="red"/></userInfo>
        </entity>
        <entity name="Bar" representedClassName="Guide.Bar" parentEntity="Place" elementID="Pub" syncable="YES">
            <attribute name="beers" attributeType="Integer 32" defaultValueString="0"/>
        </entity>
        <entity name="City" representedClassName="Guide.City" syncable="YES">
            <attribute name="name" attributeType="String"/>
            <attribute name="population" optional="YES" attributeType="Integer 64"/>
            <relationship name="places" optional="YES" toMany="YES" minCount="1" maxCount="9" deletionRule="Cascade" ordered="YES" \
        destinationEntity="Place" inverseName="city" inverseEntity="Place"/>
            <relationship name="twin" maxCount="1" deletionRule="No Action" destinationEntity="City"/>
            <fetchedProperty name="bars" optional="YES">
                <fetchRequest name="fetchedPropertyFetchRequest" entity="Bar" predicateString="city == $FETCH_SOURCE AND beers &gt; 3"/>
            </fetchedProperty>
        </entity>
        <composite name="Address">
            <attribute name="street" attributeType="String" defaultValueString="Main"/>
            <attribute name="number" optional="YES" attributeType="Integer 16"/>
            <attribute name="point" optional="YES" attributeType="Composite" composite="Point"/>
        </composite>
        <composite name="Point">
            <attribute name="x" optional="YES" attributeType="Double"/>
            <attribute name="y" optional="YES" attributeType="Double"/>
        </composite>
        <fetchRequest name="barsIn" entity="Bar" predicateString="city.name == $NAME" fetchLimit="7"/>
        <configuration name="Cloud"><memberEntity name="City"/></configuration>
        """

    package static func everythingModel() throws -> NSManagedObjectModel {
        try .parsing(everything, attributes: "userDefinedModelVersionIdentifier=\"3.1\"")
    }
}
